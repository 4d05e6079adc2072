// Adds the stored windows of `adjoint.cu` to texels, in the order of their numbers, and then its sums of integers.
//
// A warp takes some rows of a square of texels. A lane takes a column of these.
//
// `stored.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "trace/warp.cuh"
#include "samples/samples.cuh"
#include "stored/config.cuh"
#include "stored/traced.cuh"
#include "scatter/exact_sums.cuh"
#include "scatter/stored.cuh"

typedef Row<float, Channels::width> Value;
typedef StoredWindow<Channels, window_cells, lanes> Layout;
constexpr int at_once = 8;  // the windows whose groups a warp loads at once
constexpr int rows_at_once = Channels::width > 1 ? 2 : rows;  // the rows whose integers a lane loads at once

// Finds the windows that lie on some rows of a square, and sorts them by their numbers. Returns how many there are.
DEVICE int find_windows(const Arrays& arrays, int square, int count, int low, int* numbers, Box* boxes, int lane) {
  const Box* const all = (const Box*)arrays.boxes;
  int found = 0;
  for (int k = lane; k < ceil_div(count, lanes) * lanes; k += lanes) {
    bool meets = false;
    if (k < count) {
      const int number = arrays.lists[square * Stored::most_windows + k];
      const Box box = all[number];
      meets = box.low_y < low + rows && box.low_y + box.rows > low;
      numbers[k] = meets ? number : tiles;
    }
    found += num_ones(lanes_that(meets));
  }
  wait_for_lanes();
  for (int k = lane; k < count; k += lanes) {
    const int number = numbers[k];
    int place = 0;
    for (int n = 0; n < count; n++) place += numbers[n] < number;
    if (number < tiles) {
      boxes[place] = all[number];
      numbers[Stored::most_windows + place] = number;
    }
  }
  wait_for_lanes();
  return found;
}

DEVICE void run(const Arrays& arrays) {
  __shared__ __align__(16) Box boxes[warps][Stored::most_windows];
  __shared__ Group groups[warps][at_once * Layout::groups];
  __shared__ int numbers[warps][2 * Stored::most_windows];
  constexpr int parts_down = Stored::side / rows, row = Channels::parts * Channels::width;
  const int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes, item = blockIdx.x * warps + warp;
  const int square = item / parts_down;
  if (square >= Stored::squares) return;
  const bool adds_windows = has_windows(arrays.marks, square), adds_sums = has_integers(arrays.marks, square);
  const int texture = square / (Stored::squares_down * Stored::squares_across);
  const int y = square / Stored::squares_across % Stored::squares_down * Stored::side + item % parts_down * rows;
  const int low = texture * Stored::down + y;
  const int x = square % Stored::squares_across * Stored::side + lane;
  const int count = adds_windows ? arrays.marks[2 * square] : 0;
  const int found = find_windows(arrays, square, count, low, numbers[warp], boxes[warp], lane);
  const int* const order = numbers[warp] + Stored::most_windows;
  for (int part = 0; part < Channels::parts; part++) {
    Value sums[rows] = {};
    for (int k = 0; k < found; k += together) {
      if (Layout::packs && k % at_once == 0) {
        wait_for_lanes();
        for (int n = lane; n < min(at_once, found - k) * Layout::groups; n += lanes) {
          const float* const window = arrays.windows + (int64)order[k + n / Layout::groups] * Layout::size;
          groups[warp][n] = ((const Group*)window)[n % Layout::groups];
        }
        wait_for_lanes();
      }
      Value more[together][rows];
#pragma unroll
      for (int j = 0; j < together; j++) {
        const int window = min(k + j, found - 1);
        const Group* const of = groups[warp] + window % at_once * Layout::groups;
        const Box box = boxes[warp][window];
        const uint32 column = x - box.low_x;
        const float* const cells = arrays.windows + (int64)order[window] * Layout::size + Layout::first_cell + part * Channels::width;
#pragma unroll
        for (int n = 0; n < rows; n++) {
          const uint32 at = low + n - box.low_y;
          more[j][n] = {};
          if (k + j >= found || at >= (uint32)box.rows || column >= (uint32)columns_of(box)) continue;
          const int cell = at * stride_of(box) + column, bit = cell % lanes;
          if constexpr (Layout::packs) {
            const Group group = of[cell / lanes];
            if (group.cells >> bit & 1)
              more[j][n] = load_aligned_row<Channels::width>(cells + (group.first + num_ones(group.cells & ((1u << bit) - 1))) * row);
          } else {
            more[j][n] = load_row<Channels::width>(cells + cell * row);
          }
        }
      }
#pragma unroll
      for (int j = 0; j < together; j++)
        for (int n = 0; n < rows; n++)
          for (int m = 0; m < Channels::width; m++) sums[n].v[m] += more[j][n].v[m];
    }
    const int skipped = overlap_of<Channels>(part);
    const auto exists = [&](int n) { return y + n < Stored::down && x < Stored::across; };
    const auto place_of_row = [&](int n) {
      return ((int64)(low + n) * Stored::across + x) * Channels::count + first_channel<Channels>(part);
    };
#pragma unroll
    for (int first = 0; adds_sums && first < rows; first += rows_at_once) {
      Row<uint64, Channels::width> integers[rows_at_once] = {};
#pragma unroll
      for (int n = 0; n < rows_at_once; n++)
        if (exists(first + n)) integers[n] = load_row<Channels::width>((const uint64*)arrays.totals + place_of_row(first + n));
#pragma unroll
      for (int n = 0; n < rows_at_once; n++)
        for (int m = 0; m < Channels::width; m++) {
          const float sum = number_of(&integers[n].v[m], 1, 0, arrays.unit[0]);
          sums[first + n].v[m] = adds_windows ? sums[first + n].v[m] + sum : sum;
        }
    }
#pragma unroll
    for (int n = 0; n < rows; n++)
      if (exists(n)) {
        float* const to = arrays.result + place_of_row(n);
        if constexpr (Channels::aligned) store_aligned_row(to, sums[n]);
        else
          for (int m = 0; m < Channels::width; m++)
            if (m >= skipped) to[m] = sums[n].v[m];
      }
  }
}
