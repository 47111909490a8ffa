"""Which tools there are, whether they can run here, and by what names they answer."""
