"""The nouns of roles: the layout as a file has it, its ready forms, and the facts about it."""
