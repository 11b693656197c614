"""The Textual front end. Imported only when a chat is drawn."""
