"""Operators of object detectors: regions of interest, boxes, anchors, YOLO layers."""
