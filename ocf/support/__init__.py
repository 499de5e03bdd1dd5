"""What every room may use: messages, JSON, the cache of kernels, progress, checkpoints, wording."""
