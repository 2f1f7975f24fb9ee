"""Settings, choices, import paths and files from outside."""
