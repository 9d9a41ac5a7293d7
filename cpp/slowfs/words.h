// `key=value` words: the form in which settings and commands arrive, on the command line and over
// the control socket. Values are percent-encoded, so that a path may hold any byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prisma::slowfs {

struct Word {
  std::string key;
  std::string value;
};

/// Splits at the first '='; throws std::invalid_argument when there is none.
Word parse_word(std::string_view text);

/// The words of a line, which are parted by single blanks.
std::vector<std::string_view> split(std::string_view line);

/// Numbers as a whole value; throw std::invalid_argument naming the key.
double number_of(const Word& word);        // not negative
unsigned long count_of(const Word& word);  // a whole number
bool flag_of(const Word& word);            // 0 or 1

std::string percent_encoded(std::string_view bytes);
std::string percent_decoded(std::string_view text);

}  // namespace prisma::slowfs
