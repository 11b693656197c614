"""The pages of the settings screen: each knows its rows and what can be done with them."""

from app.chat.settings.folder_page import FolderPage
from app.chat.settings.keys_page import KeysPage
from app.chat.settings.options_page import OptionsPage
from app.chat.settings.page import Page, Row

__all__ = ["FolderPage", "KeysPage", "OptionsPage", "Page", "Row"]
