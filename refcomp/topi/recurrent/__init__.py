"""Cells and layers that carry a state along a sequence: RNN, GRU, LSTM."""
