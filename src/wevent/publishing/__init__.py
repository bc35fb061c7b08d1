"""From settings to a running publication, and the loop: read, step, commit, emit."""
