"""The one kind of error these tools raise for a mistake in what they read."""


class ChapterError(Exception):
    """A mistake in a chapter or a document; its text begins with the file and line to fix."""
