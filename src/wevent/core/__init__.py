"""The pure middle: numbers in, numbers out. No files, clocks, logs or global state; imports numpy only."""
