"""Programs for the development of Kohort. They are not part of the installed package."""
