#include "prisma/wire/message.h"

#include <cstring>
#include <type_traits>
#include <utility>

namespace prisma::wire {
namespace {

/// What may be copied byte by byte: it has no padding, which would carry along what lay there
/// before.
template <typename T>
concept Plain = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

class Writer {
 public:
  template <Plain T>
  void put(const T& value) {
    put_bytes(&value, sizeof(value));
  }
  void put(const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    put_bytes(text.data(), text.size());
  }
  template <typename T>
  void put(const std::vector<T>& list) {
    put(static_cast<std::uint32_t>(list.size()));
    for (const T& item : list) put(item);
  }
  void put(const Sample& sample) {
    put(sample.offset);
    put(sample.length);
    put(sample.path);
  }
  void put(const Hello& hello) {
    put(hello.version);
    put(hello.pid);
    put(hello.session);
  }
  void put(const Welcome& welcome) {
    put(welcome.version);
    put(welcome.client);
    put(welcome.session);
    put(welcome.engine_pid);
  }
  void put(const Announce& announce) {
    put(announce.plan);
    put(announce.lane);
    put(announce.named_by);
    put(announce.first_position);
    put(announce.samples);
  }
  void put(const Pin& pin) { put(pin.entries); }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void put_bytes(const void* from, std::size_t count) {
    const auto* start = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), start, start + count);
  }

  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <Plain T>
  bool get(T& value) {
    if (left_.size() < sizeof(value)) return false;
    std::memcpy(&value, left_.data(), sizeof(value));
    left_ = left_.subspan(sizeof(value));
    return true;
  }
  bool get(std::string& text) {
    std::uint32_t size = 0;
    if (!get(size) || left_.size() < size) return false;
    text.assign(reinterpret_cast<const char*>(left_.data()), size);
    left_ = left_.subspan(size);
    return true;
  }
  template <typename T>
  bool get(std::vector<T>& list) {
    std::uint32_t size = 0;
    if (!get(size) || size > left_.size()) return false;
    list.resize(size);
    for (T& item : list) {
      if (!get(item)) return false;
    }
    return true;
  }
  bool get(Sample& sample) {
    return get(sample.offset) && get(sample.length) && get(sample.path) &&
           sample.path.find('\0') == std::string::npos;
  }
  bool get(Hello& hello) { return get(hello.version) && get(hello.pid) && get(hello.session); }
  bool get(Welcome& welcome) {
    return get(welcome.version) && get(welcome.client) && get(welcome.session) &&
           get(welcome.engine_pid);
  }
  bool get(Announce& announce) {
    return get(announce.plan) && get(announce.lane) && get(announce.named_by) &&
           announce.named_by <= NamedBy::kPath && get(announce.first_position) &&
           get(announce.samples);
  }
  bool get(Pin& pin) { return get(pin.entries); }
  bool at_end() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
};

template <std::size_t kIndex = 0>
std::optional<Message> decode_as(std::size_t kind, Reader& reader) {
  if constexpr (kIndex < std::variant_size_v<Message>) {
    if (kind != kIndex) return decode_as<kIndex + 1>(kind, reader);
    std::variant_alternative_t<kIndex, Message> message;
    if (!reader.get(message) || !reader.at_end()) return {};
    return message;
  }
  return {};
}

}  // namespace

std::vector<std::byte> encode(const Message& message) {
  Writer writer;
  writer.put(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& it) { writer.put(it); }, message);
  return writer.take();
}

std::optional<Message> decode(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  std::uint8_t kind = 0;
  if (!reader.get(kind)) return {};
  return decode_as(kind, reader);
}

}  // namespace prisma::wire
