"""What is known of a page at a time, as columns: the inputs of predictors."""
