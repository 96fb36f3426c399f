"""Instant feedback for the exercises: one module a chapter, one function an exercise.

    from attention.checks import scaling as check
    check.softmax_with_temperature(my_softmax)

A check returns nothing and prints one line when the answer is right; when it is not, it raises
`NotYet` with a sentence that says which property failed and where to look. It runs in the same
process as the answer: it is feedback, not proof. Proof of an answer is the business of the grader,
which keeps inputs, reference and comparison in another process.
"""
