"""Callbacks for training frameworks. Each is imported by its own name, and imports its framework:

from coop.integrations.transformers import CoopCallback
from coop.integrations.lightning import CoopCallback
"""
