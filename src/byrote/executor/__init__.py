# SPDX-License-Identifier: MIT
"""The reference executor: one attempt of a Python task in a process of its own."""
