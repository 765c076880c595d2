"""The price-change study of Han et al. (2019), section 3, for any log: numbers, then charts."""
