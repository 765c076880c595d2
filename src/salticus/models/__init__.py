"""What is trained: models, their files and registry, and how they are trained."""
