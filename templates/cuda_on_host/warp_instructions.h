// Instructions of PTX on this machine, by their text: mma.sync, ldmatrix. Each lane writes its
// registers to its slot, and all lanes meet before and after they read the slots of others.
//
// The formulas are the PTX ISA's, solved for the lane and the register that hold an element.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

inline bool is_type(const char* type, const char* name) { return strcmp(type, name) == 0; }

// What a register holds, of elements of a type.
inline double element_of(const char* type, unsigned bits, int number) {
  if (is_type(type, "f16")) return __half2float(__ushort_as_half(bits >> 16 * number));
  if (is_type(type, "s8")) return (signed char)(bits >> 8 * number);
  if (is_type(type, "u8")) return (unsigned char)(bits >> 8 * number);
  if (is_type(type, "s32")) return int(bits);
  if (is_type(type, "bf16")) bits = bits >> 16 * number << 16;
  if (is_type(type, "tf32")) bits = bits >> 13 << 13;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

inline int elements_of(const char* type) {  // in a register
  return strstr(type, "16") ? 2 : strstr(type, "32") ? 1 : 4;
}

// The bits of a sum: integers wrap.
inline unsigned bits_of_sum(const char* type, double total) {
  if (is_type(type, "f16")) return rounded_to_half(total);
  if (is_type(type, "s32")) return (unsigned)(long long)total;
  const float rounded = total;
  unsigned bits;
  memcpy(&bits, &rounded, sizeof bits);
  return bits;
}

inline const unsigned* registers_of(int lane) { return (const unsigned*)slot_of(lane); }

// D = A B + C; `registers` are those of D, A, B and C.
inline void multiply_matrices(const char* text, unsigned** registers) {
  int rows, columns, depth;
  char sums[8], first[8], second[8], old[8];
  const char* form = "mma.sync.aligned.m%dn%dk%d.row.col.%7[^.].%7[^.].%7[^.].%7[^ ]";
  const int read = sscanf(text, form, &rows, &columns, &depth, sums, first, second, old);
  if (read != 7 || columns != 8) report("an mma of an unknown form", read);
  const int packed = elements_of(first), sums_packed = elements_of(sums), lane = own_lane();
  const int sums_count = rows / 4 / sums_packed;
  const int a_count = rows * depth / 32 / packed, b_count = columns * depth / 32 / packed;
  unsigned* const own = (unsigned*)slot_of(lane);
  for (int k = 0; k < a_count + b_count; ++k) own[k] = *registers[sums_count + k];
  meet_warp(3);
  for (int k = 0; k < sums_count; ++k) {
    unsigned result = 0;
    for (int part = 0; part < sums_packed; ++part) {
      const int place = k * sums_packed + part;  // of the element among those of the lane
      const int row = lane / 4 + place / 2 * 8, column = lane % 4 * 2 + place % 2;
      double total = element_of(old, *registers[sums_count + a_count + b_count + k], part);
      for (int at = 0; at < depth; ++at) {
        const int quarter = at / packed % 4, along = at / packed / 4;
        const unsigned a = registers_of(row % 8 * 4 + quarter)[along * (rows / 8) + row / 8];
        const unsigned b = registers_of(column * 4 + quarter)[a_count + along];
        total += element_of(first, a, at % packed) * element_of(second, b, at % packed);
      }
      result |= bits_of_sum(sums, total) << 16 * part;
    }
    *registers[k] = result;
  }
  meet_warp(3);
}

// An address in shared memory has 32 bits on a GPU. Here the thread remembers what it stands for.
inline thread_local const unsigned char* shared_place;

inline size_t __cvta_generic_to_shared(const void* place) {
  shared_place = (const unsigned char*)place;
  return (size_t)place;
}

// Each lane brings its own row of 16 bytes; `registers` are four results and an address.
inline void load_matrices(const char* text, unsigned** registers) {
  if (*registers[4] != (unsigned)(uintptr_t)shared_place) report("an unknown shared address", 0);
  if ((uintptr_t)shared_place % 16) report("ldmatrix of an unaligned row", (uintptr_t)shared_place % 16);
  const int lane = own_lane();
  memcpy(slot_of(lane), shared_place, 16);
  meet_warp(4);
  for (int matrix = 0; matrix < 4; ++matrix) {
    if (!strstr(text, ".trans")) {
      *registers[matrix] = registers_of(matrix * 8 + lane / 4)[lane % 4];
      continue;
    }
    unsigned halves[2];
    for (int part = 0; part < 2; ++part) {
      const unsigned* row = registers_of(matrix * 8 + lane % 4 * 2 + part);
      halves[part] = row[lane / 8] >> 16 * (lane / 4 % 2) & 0xffff;
    }
    *registers[matrix] = halves[0] | halves[1] << 16;
  }
  meet_warp(4);
}

// `operands` are variables, which the text names by their numbers.
template <typename... T>
void ptx(const char* text, T&... operands) {
  unsigned* known[] = {(unsigned*)&operands...};
  unsigned* registers[32];  // in the order of the text
  int count = 0;
  for (const char* at = strchr(text, '%'); at; at = strchr(at + 1, '%'))
    registers[count++] = known[atoi(at + 1)];
  if (strncmp(text, "mma.", 4) == 0) multiply_matrices(text, registers);
  else if (strncmp(text, "ldmatrix.", 9) == 0) load_matrices(text, registers);
  else if (strncmp(text, "prefetch.", 9) != 0) report("an unknown instruction of PTX", 0);
}

template <typename T>
T __dp4a(T a, T b, T total) {
  const char* type = T(-1) < T(0) ? "s8" : "u8";
  unsigned sum = total;  // wraps
  for (int k = 0; k < 4; ++k) sum += int(element_of(type, a, k)) * int(element_of(type, b, k));
  return sum;
}
