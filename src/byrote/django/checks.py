# SPDX-License-Identifier: MIT
"""System checks."""
