"""Requirements that users hold and held, and the class each is counted in. Pure: no input, no output, no clock."""
