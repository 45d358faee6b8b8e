"""Products of matrices that lie spread over the lanes of a wave: MFMA and WMMA."""
