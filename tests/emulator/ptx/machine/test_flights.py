"""Which bytes are in flight."""

import numpy as np

from refcomp.emulator.ptx.machine.flights import Flights


def test_bytes_fly_until_their_thread_waits():
    flights = Flights(64, threads=2)
    flights.take_off(np.array([0, 1]), np.array([0, 16]), 8)
    flights.commit(np.array([0, 1]))
    flights.take_off(np.array([0]), np.array([32]), 4)
    flights.commit(np.array([0]))

    def flying():
        return flights.in_flight(np.arange(0, 64, 4), 4).tolist()

    both, first = [0, 1, 4, 5, 8], [4, 5, 8]
    assert [place for place, flies in enumerate(flying()) if flies] == both
    flights.land(np.array([0]), pending=1)
    assert [place for place, flies in enumerate(flying()) if flies] == first
    flights.land(np.array([0, 1]), pending=0)
    assert not any(flying())


def test_all_copies_land_without_a_group():
    flights = Flights(16, threads=1)
    flights.take_off(np.array([0]), np.array([0]), 16)
    flights.land(np.array([0]), pending=0)
    assert flights.in_flight(np.array([12]), 4).all()
    flights.land(np.array([0]), pending=-1)
    assert not flights.in_flight(np.array([12]), 4).any()
