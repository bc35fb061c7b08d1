"""All constants of `pft`, each with its derivation.

None of them affects privacy: they shape post-processing, and offers that go through the ledger. *Chosen* are round values
that did well together on development streams, with other seeds than published results (`benchmarks/`). *Believed* are
priors, which data outweighs. *Bounds* limit time or memory.
"""

from __future__ import annotations

import numpy as np

# Models of a cell, relative to its scale s (spec 11.2)
SMALLEST_SCALE = 0.05  # no s below this: a cell is never known to be still. That of a count of 1 in one slot of twenty
MEMORYLESS_PRIOR = 0.025  # prior weight of a stream without memory: more would shorten other periods. Chosen
SEASONAL_PRIOR = 0.1  # part of the seasonal models in the prior that is not the null's. Believed
EM_ROUNDS = 30  # of the fit of first levels. Bound
CELLS_AT_ONCE = 512  # cells that are corrected together. Bound: all their models fit the processor's cache

# Learning (spec 11.3 to 11.5)
MODEL_SWITCH = 0.01  # chance per release that a cell follows another model from now on: memory of 100 releases
POOL_PACE = 0.03  # renewal of pooled evidence per release: memory of about 30 releases
PRIOR_CELLS = 2.0  # the prior of the models counts like this many cells. Believed
CELL_RESTART = 1e-3  # chance per slot that a cell starts anew anywhere. Believed
SURPRISE = 25.0  # squared standard deviations of a residual that is a jump: five deviations
SURPRISE_MEMORY = 2000.0  # slots after which seen jumps are forgotten. Chosen

# Seasonality (spec 11.9)
HARMONICS = 6  # of a cycle: a day resolved to two hours
SWING = 0.3  # τ of the cycle itself, relative to the reach; of harmonic n an n-th of it. Believed
SPECIAL_SWING = 0.7  # of SWING, the difference of special days. Chosen
SPECIAL_LEVEL = 0.15  # τ of the level of special days as a whole. Chosen
SMALLEST_REACH = 0.5  # no reach below half a user
SEASONAL_MODELS = (  # walk, flicker, and drift of coefficients in a cycle, relative to τ²r²
    (1e-5, 1.0, 1e-4),  # every day is like the last
    (1e-5, 1.0, 1e-2),  # days change
    (1e-1, 1.0, 1e-3),  # and so does the level
)

# Period of releases (spec 11.6 and 11.7)
FIRST_PART = 6  # the first release takes a sixth of ε at most: the whole window is still unspent. Chosen
NEXT_PART = 3  # the first release of other users takes a third of the remainder at most: something remains. Chosen
CLEAR_NOISE = 0.1  # noise of the first release beside the root of the average cell's users. Chosen
READY = 0.5  # a release waits until it has this part of the period's steady budget. Chosen
HYSTERESIS = 0.1  # the period changes only for a gain above this part. Chosen
RECONSIDER = 4  # releases between two reconsiderations, once settled. Bound
SETTLED = 8  # releases after which the stream counts as known. Chosen
PERIOD_STEP = 1.25  # candidate periods grow by this factor. Bound
PLANNED_WINDOWS = 24  # candidates that are windows, at most. Bound
PHASE = 1.0 / 12.0  # of the turn of a harmonic: two releases this far apart see different phases. Chosen
EXACT_RELEASES = 4096  # releases within a window that are examined one by one. Bound
ENTRIES_AT_ONCE = 1 << 18  # candidates × classes that are examined together. Bound: 2 MB per array

# Expected errors (spec 11.6)
HORIZON = 500.0  # slots over which learning must pay. Chosen
IGNORANCE_RELEASES = 50.0  # over which the spread of models turns from ignorance into difference between cells. Chosen
JUMP_RATE = 5e-5  # jumps of half the scale per slot, believed before any was seen …
JUMP_RATE_SLOTS = 500.0  # … for this many slots

# Bias of weighted classes (spec 11.8)
BIAS_MODEL_MIX = 0.01  # of the prior in the weights of models: no model is ever ruled out
BIAS_RESTART = 2e-4  # chance per slot that the bias of a cell starts anew, believed before anything was seen …
BIAS_RESTART_SLOTS = 1000.0  # … for this many slots
BIAS_RESTART_PLANNED = 2e-3  # the same in plans, where caution is due. Chosen
BIAS_MEMORY = 2000.0  # slots after which evidence, and biases that started anew, are forgotten
BIAS_BOUNDS = (
    -4.0,
    0.9,
)  # of β: a cell of the strictest users shows nearly nothing in the main sum, others a few times
BIAS_JUMP = 9.0  # squared standard deviations of a move of the count that is a jump: three deviations
CAUTION = 0.2  # of the prior weight of "no bias" that remains in stated errors and plans. Chosen

# Trust in the corrected estimate (spec 11.8)
STEEPEST = 0.2  # slope dm/dx: a cell of strict users hardly moves the main sum, and is stretched by five at most
PRIOR_TRUST = 0.9  # before a calibration measurement was predicted. Believed
TRUST_SWITCH = 0.05  # chance per calibration measurement that the other estimate is better from now on: memory of 20
CONTRADICTION = 25.0  # squared standard deviations beyond which older knowledge is void: five deviations

# Schedules of calibration measurements (spec 11.8)
CALIBRATION_LEVELS = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])  # of what the strictest class could give. Bound
CALIBRATION_MULTIPLES = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256])  # of the period. Bound
CALIBRATION_WINDOWS = 9  # windows tried as distances, from the shortest to the longest. Bound
CALIBRATION_PATIENCE = 3  # equal weights alone may take this many times the period of main sums. Chosen
ALARM = 0.25  # of a calibration's noise variance: a jump that may have moved biases by more asks for one. Chosen
ALIKE_PART = 0.1  # expected errors that differ by less than this part, and …
ALIKE_COUNTS = 0.02  # … by this many squared counts per cell, are alike. Chosen
FREE_CALIBRATION = 0.02  # calibrations that cost no more than this are taken. Chosen
LONG_PERIOD = 8  # slots: with a period this long every release is followed by a new plan. Bound
