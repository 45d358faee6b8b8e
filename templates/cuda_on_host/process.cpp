// A process that runs CUDA kernels on this machine, with a thread of C++ for each thread of a group.
//
// The first argument is a shared object that was compiled with kernels.h, the second the seconds that a
// launch may take. Each launch comes as a
// request on stdin: the kernel's name, the sizes, the sizes of the dynamic shared arrays, and the
// arguments. The reply on stdout has all arrays. A fault is one line on stderr, and ends the process.
//
// Faults: threads of a group that wait at different lines, or of which some have ended; threads that
// wait for ever; a write beyond an array. Sanitizers report others: races, indices, undefined
// behaviour. Groups run one after another, so races between groups are not found.

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
constexpr std::size_t GUARD = 0;  // the sanitizer has its own
#else
#define ASAN_POISON_MEMORY_REGION(begin, size)
constexpr std::size_t GUARD = 256;
#endif

constexpr std::size_t ALIGNMENT = 256;  // of arrays, as cudaMalloc has it
constexpr std::size_t SHARED_ALIGNMENT = 128;
constexpr unsigned char UNWRITTEN = 0xfb;  // what a group finds in shared arrays
constexpr auto PATIENCE = std::chrono::seconds(3);

struct dim3 {
  unsigned x, y, z;
};

thread_local dim3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
unsigned char* dynamic_shared;

[[noreturn]] void report(const char* fault, int number) {
  std::fprintf(stderr, "fault: %s: %d\n", fault, number);
  std::fflush(stderr);
  _exit(3);
}

// Threads that meet: all must come to the same place. What they wrote before, all see afterwards.
// std::barrier of GCC 12 may lose a wake-up, so that a thread waits for ever.
class Meeting {
 public:
  Meeting(const char* what, int first, int count)
      : what(what), first(first), count(count), places(new std::atomic<int>[count]()) {}

  void arrive(int thread, int place) {
    places[thread - first].store(place, std::memory_order_relaxed);
    std::unique_lock<std::mutex> lock(mutex);
    const long before = met;
    if (++waiting < count) {
      changed.wait(lock, [&] { return met != before; });
      return;
    }
    check();
    waiting = 0;
    ++met;
    changed.notify_all();
  }

  // Where each thread waits, of those that do.
  const char* const what;
  const int first, count;
  const std::unique_ptr<std::atomic<int>[]> places;
  std::atomic<int> waiting = 0;   // threads that have arrived
  std::atomic<long> met = 0;      // how often all have

 private:
  void check();

  std::mutex mutex;
  std::condition_variable changed;
};

struct Warp {
  Warp(int first, int count) : meeting("warp", first, count) {}
  Meeting meeting;
  alignas(16) unsigned char slots[32][32];
};

std::unique_ptr<Meeting> group;
std::vector<std::unique_ptr<Warp>> warps;
unsigned char *static_begin, *static_end, *dynamic_end;
std::vector<std::pair<std::size_t, std::size_t>> dynamic_arrays;  // begin and size

__attribute__((no_sanitize("address", "thread"))) void forget(unsigned char* begin, unsigned char* end) {
  for (volatile unsigned char* place = begin; place < end; ++place) *place = UNWRITTEN;
}

void forget_shared() {
  forget(static_begin, static_end);
  for (auto [begin, size] : dynamic_arrays) forget(dynamic_shared + begin, dynamic_shared + begin + size);
}

void Meeting::check() {
  const int place = places[0].load(std::memory_order_relaxed);
  for (int k = 1; k < count; ++k) {
    const int other = places[k].load(std::memory_order_relaxed);
    if (other == place) continue;
    std::fprintf(stderr, "fault: divergent %s: thread %d is at line %d, thread %d at line %d (0: the end)\n",
                 what, first, place, first + k, other);
    std::fflush(stderr);
    _exit(3);
  }
  if (this == group.get() && place == 0) forget_shared();  // before the next group
}

int own_number() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

void meet_group(int line) { group->arrive(own_number(), line); }
void meet_warp(int operation) { warps[own_number() / 32]->meeting.arrive(own_number(), operation); }
unsigned char* slot_of(unsigned lane) { return warps[own_number() / 32]->slots[lane]; }

// Return how often threads have met; -1 if some thread does not wait.
long stuck() {
  long met = group->met;
  int waiting = group->waiting;
  for (auto& warp : warps) {
    met += warp->meeting.met;
    waiting += warp->meeting.waiting;
  }
  return waiting == group->count ? met : -1;
}

// The threads of a grid that have ended.
struct Ended {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;

  void add() {
    std::lock_guard<std::mutex> lock(mutex);
    ++count;
    changed.notify_one();
  }

  // Return true if all have ended after some time.
  bool all(int threads) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return count == threads; });
  }
};

// Wait until all threads have ended. A fault if all wait for ever.
void watch(Ended& ended, int count) {
  auto last_change = std::chrono::steady_clock::now();
  for (long last = -1; !ended.all(count);) {
    const long now = stuck();
    if (now == -1 || now != last) last_change = std::chrono::steady_clock::now();
    last = now;
    if (std::chrono::steady_clock::now() - last_change > PATIENCE)
      report("divergent threads: all wait, of which for their warp", group->count - group->waiting);
  }
}

using Kernel = void (*)(void**, int);

void run_grid(dim3 grid, dim3 block, Kernel kernel, std::vector<void*>& places) {
  gridDim = grid;
  blockDim = block;
  const int count = block.x * block.y * block.z;
  group = std::make_unique<Meeting>("barrier", 0, count);
  warps.clear();
  for (int first = 0; first < count; first += 32)
    warps.push_back(std::make_unique<Warp>(first, count - first < 32 ? count - first : 32));
  forget_shared();
  Ended ended;
  std::vector<std::thread> threads;
  for (int number = 0; number < count; ++number)
    threads.emplace_back([=, &places, &ended] {
      threadIdx = {number % block.x, number / block.x % block.y, number / block.x / block.y};
      for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
          for (unsigned x = 0; x < grid.x; ++x) {
            blockIdx = {x, y, z};
            kernel(places.data(), places.size());
            meet_group(0);
          }
      ended.add();
    });
  watch(ended, count);
  for (std::thread& thread : threads) thread.join();
}

// Memory of a size, between guards; exact under the address sanitizer.
class Memory {
 public:
  explicit Memory(std::size_t size) : size(size) {
    if (posix_memalign((void**)&base, ALIGNMENT, size + 2 * GUARD)) std::abort();
    std::memset(base, GUARD_BYTE, GUARD);
    std::memset(data() + size, GUARD_BYTE, GUARD);
  }
  ~Memory() { std::free(base); }
  Memory(const Memory&) = delete;

  unsigned char* data() { return base + GUARD; }

  bool is_whole() {
    for (std::size_t k = 0; k < GUARD; ++k)
      if (base[k] != GUARD_BYTE || data()[size + k] != GUARD_BYTE) return false;
    return true;
  }

  const std::size_t size;

 private:
  static constexpr unsigned char GUARD_BYTE = 0xa5;
  unsigned char* base;
};

void read(void* place, std::size_t size) {
  if (size && std::fread(place, size, 1, stdin) != 1) _exit(0);  // the other side has gone
}

template <typename T>
T read() {
  T value;
  read(&value, sizeof value);
  return value;
}

// Lay the dynamic shared arrays one behind the other. Each begins at a multiple of 128 bytes.
std::unique_ptr<Memory> dynamic_memory(std::vector<std::uint64_t>& begins) {
  std::size_t end = 0;
  dynamic_arrays.clear();
  for (std::uint64_t count = read<std::uint64_t>(); count; --count) {
    const std::size_t begin = (end + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
    end = begin + read<std::uint64_t>();
    begins.push_back(begin);
    dynamic_arrays.emplace_back(begin, end - begin);
  }
  auto memory = std::make_unique<Memory>(end);
  dynamic_shared = memory->data();
  for (std::size_t k = 1; k < begins.size(); ++k) {
    const std::size_t last = begins[k - 1] + dynamic_arrays[k - 1].second;
    ASAN_POISON_MEMORY_REGION(dynamic_shared + last, begins[k] - last);
  }
  return memory;
}

void serve(void* library, int limit_s) {
  alarm(0);
  std::string name(read<std::uint64_t>(), ' ');
  alarm(limit_s);
  read(name.data(), name.size());
  const auto kernel = (Kernel)dlsym(library, ("call_" + name).c_str());
  if (!kernel) report("no such kernel", 0);
  const auto grid = read<dim3>(), block = read<dim3>();
  std::vector<std::uint64_t> begins;
  const auto dynamic = dynamic_memory(begins);
  std::vector<std::unique_ptr<Memory>> memory, arrays;
  std::vector<void*> places;
  for (std::uint64_t count = read<std::uint64_t>(); count; --count) {
    const bool is_array = read<std::uint64_t>();
    auto argument = std::make_unique<Memory>(read<std::uint64_t>());
    read(argument->data(), argument->size);
    places.push_back(argument->data());
    (is_array ? arrays : memory).push_back(std::move(argument));
  }
  for (std::uint64_t& begin : begins) places.push_back(&begin);
  run_grid(grid, block, kernel, places);
  if (!dynamic->is_whole()) report("a write beyond the dynamic shared memory, of bytes", dynamic->size);
  for (auto& array : arrays) {
    if (!array->is_whole()) report("a write beyond an array, of bytes", array->size);
    std::fwrite(array->data(), 1, array->size, stdout);
  }
  std::fputc('.', stdout);
  std::fflush(stdout);
}

int main(int, char** arguments) {
  void* library = dlopen(arguments[1], RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "fault: %s\n", dlerror());
    return 3;
  }
  const auto shared = (unsigned char* (*)(int))dlsym(library, "shared_memory");
  static_begin = shared(0);
  static_end = shared(1);
  std::fputc('.', stdout);
  std::fflush(stdout);
  for (;;) serve(library, std::atoi(arguments[2]));
}
