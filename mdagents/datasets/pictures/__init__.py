"""Pictures as files: where they are, what they show, how they are sent. Knows no questions."""
