"""Trials: many seeded cases of one promise each, far more than a test has time for.

`make soak` runs them all, `make test` every tenth; CONTRIBUTING.md tells how to rerun one.

    suite.py       what a suite and a case are
    running.py     runs cases in processes of their own, each with its time limit
    __main__.py    such a process: python -m trials SUITE --seed N CASE...
    data.py        files and plans at random, and what plain reads give
    consumers.py   the ways to read through PRISMA
    trainer.py     a program that reads until it is killed
    all_suites.py  the list of them
"""
