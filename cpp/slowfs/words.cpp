#include "slowfs/words.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace prisma::slowfs {
namespace {

[[noreturn]] void refuse(const Word& word, const char* wanted) {
  throw std::invalid_argument(word.key + " must be " + wanted + ", got \"" + word.value + "\"");
}

template <typename Number>
bool parse_whole(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end;
}

}  // namespace

Word parse_word(std::string_view text) {
  const auto sign = text.find('=');
  if (sign == std::string_view::npos) {
    throw std::invalid_argument("expected key=value, got \"" + std::string(text) + "\"");
  }
  return {std::string(text.substr(0, sign)), percent_decoded(text.substr(sign + 1))};
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const auto end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

double number_of(const Word& word) {
  double number = 0;
  if (!parse_whole(word.value, number) || !std::isfinite(number) || number < 0) {
    refuse(word, "a number that is not negative");
  }
  return number;
}

unsigned long count_of(const Word& word) {
  unsigned long number = 0;
  if (!parse_whole(word.value, number)) refuse(word, "a whole number");
  return number;
}

bool flag_of(const Word& word) {
  if (word.value != "0" && word.value != "1") refuse(word, "0 or 1");
  return word.value == "1";
}

std::string percent_encoded(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (const unsigned char byte : bytes) {
    if (byte < 0x80 && (std::isalnum(byte) || byte == '/' || byte == '.' || byte == '_')) {
      text.push_back(static_cast<char>(byte));
    } else {
      text.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return text;
}

std::string percent_decoded(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned value = 0;
    const char* digits = text.data() + at + 1;
    if (text[at] == '%' && at + 2 < text.size() &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      bytes.push_back(static_cast<char>(value));
      at += 2;
    } else {
      bytes.push_back(text[at]);
    }
  }
  return bytes;
}

}  // namespace prisma::slowfs
