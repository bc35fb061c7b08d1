"""Pictures: the rules that all of them keep. Only `canvas` and what imports it need matplotlib (`wevent[experiments]`)."""
