"""What a prepared model consists of, and whether its files are as they were written."""
