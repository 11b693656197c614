"""The models there are and could be: what is listed, fetched, looked at. Knows no screen."""
