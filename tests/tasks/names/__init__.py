# SPDX-License-Identifier: MIT
"""Two apps whose functions have the same name, and one task that is named so."""
