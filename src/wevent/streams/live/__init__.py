"""Events as they come: lines on a pipe, slots that are open."""
