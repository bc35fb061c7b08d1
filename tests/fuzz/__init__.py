"""Every parser under a coverage-guided fuzzer: `python -m tests.fuzz TARGET --seconds N`.

A target is a module with `check(data)`, which raises if a promise is broken, `SEEDS` to begin with and `WORDS` that
inputs are likely to hold. What was worth keeping of its inputs is in corpus/TARGET and is run again by every test run,
without the fuzzer (test_corpus.py).
"""
