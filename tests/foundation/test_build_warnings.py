from threading import Thread

from refcomp.foundation.build_warnings import note_warning, warning_count


def test_warnings_of_all_threads_count():
    before = warning_count()
    threads = [Thread(target=note_warning) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warning_count() == before + 4
