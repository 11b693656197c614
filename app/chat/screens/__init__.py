"""Full screens: the chat, the wizard, dialogs."""
