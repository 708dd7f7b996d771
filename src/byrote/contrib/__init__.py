# SPDX-License-Identifier: MIT
"""Integrations with other tools, built on the public hooks of an app."""
