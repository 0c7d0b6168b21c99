"""Exercises: what they are, building and running them, and grading. Standard library only.

    catalogue   the exercises there are, and the test cases that their tests.cpp holds
    skeleton    the student's file from the one in solution/
    mutants     plausible mistakes as patches, each with its hint
    compiling   the compiler, and what is compiled once for all
    cuda        the same for kernels: on the emulator, or with nvcc
    sandbox     a process with limits, and the end of all that it started
    running     one process for each test case, and what it scored
    submissions, grading, reports   a folder of submissions, and what comes out
    bundle      the course without its solutions
    template    a new chapter with its exercise
"""
