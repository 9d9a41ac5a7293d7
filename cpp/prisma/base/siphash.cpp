#include "prisma/base/siphash.h"

#include <bit>
#include <cstring>

namespace prisma {
namespace {

class SipState {
 public:
  explicit SipState(const HashKey& key)
      : a_(key[0] ^ 0x736f6d6570736575u),
        b_(key[1] ^ 0x646f72616e646f6du ^ 0xee),
        c_(key[0] ^ 0x6c7967656e657261u),
        d_(key[1] ^ 0x7465646279746573u) {}

  void absorb(std::uint64_t word) {
    d_ ^= word;
    rounds(2);
    a_ ^= word;
  }

  Hash128 finish() {
    c_ ^= 0xee;
    rounds(4);
    const std::uint64_t low = a_ ^ b_ ^ c_ ^ d_;
    b_ ^= 0xdd;
    rounds(4);
    return {low, a_ ^ b_ ^ c_ ^ d_};
  }

 private:
  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      a_ += b_, c_ += d_;
      b_ = std::rotl(b_, 13) ^ a_;
      d_ = std::rotl(d_, 16) ^ c_;
      a_ = std::rotl(a_, 32);
      c_ += b_, a_ += d_;
      b_ = std::rotl(b_, 17) ^ c_;
      d_ = std::rotl(d_, 21) ^ a_;
      c_ = std::rotl(c_, 32);
    }
  }

  std::uint64_t a_, b_, c_, d_;
};

}  // namespace

Hash128 siphash128(const HashKey& key, std::span<const std::byte> bytes) {
  SipState state(key);
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    state.absorb(word);
  }
  std::uint64_t last = static_cast<std::uint64_t>(bytes.size()) << 56;
  for (std::size_t i = 0; at + i < bytes.size(); ++i) {
    last |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  }
  state.absorb(last);
  return state.finish();
}

}  // namespace prisma
