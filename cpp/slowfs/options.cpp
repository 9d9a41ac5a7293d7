#include "slowfs/options.h"

#include <climits>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace prisma::slowfs {
namespace {

int small_count_of(const Word &word) {
  const auto number = count_of(word);
  if (number > INT_MAX) throw std::invalid_argument(word.key + " is too large: " + word.value);
  return static_cast<int>(number);
}

void change(Options &options, const Word &word) {
  if (word.key == "control-fd") {
    options.control_fd = small_count_of(word);
  } else if (word.key == "owner-pid") {
    options.owner_pid = small_count_of(word);
  } else if (word.key == "threads") {
    options.threads = count_of(word);
  } else if (word.key == "max-read") {
    options.max_read = count_of(word);
  } else if (word.key == "allow-other") {
    options.allow_other = flag_of(word);
  } else if (word.key == "remove-mountpoint") {
    options.remove_mountpoint = flag_of(word);
  } else {
    throw std::invalid_argument("no option --" + word.key);
  }
}

}  // namespace

const char *const kUsage =
    "usage: prisma-slowfs SOURCE MOUNTPOINT "
    "[--OPTION=VALUE ...] [SETTING=VALUE ...]\n"
    "Shows SOURCE at MOUNTPOINT, read-only and slower, "
    "until interrupted or unmounted.\n"
    "options   --threads=16 --max-read=1048576 "
    "--allow-other=0\n"
    "          --remove-mountpoint=0 --control-fd=N --owner-pid=N\n"
    "settings  open_delay_s read_delay_s stat_delay_s "
    "jitter=uniform|exponential jitter_share\n"
    "          spike_share spike_factor bytes_per_s "
    "reads_per_s seed keep_cache direct_io\n"
    "          attr_timeout_s\n";

Options parse_options(int count, char **arguments) {
  Options options;
  std::vector<std::string> places;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument.starts_with("--")) {
      change(options, parse_word(argument.substr(2)));
    } else if (places.size() < 2) {
      places.emplace_back(argument);
    } else {
      change(options.behaviour, parse_word(argument));
    }
  }
  if (places.size() != 2) throw std::invalid_argument("SOURCE and MOUNTPOINT are needed");
  if (options.threads < 1) throw std::invalid_argument("threads must be at least 1");
  options.source = places[0];
  options.mountpoint = places[1];
  return options;
}

}  // namespace prisma::slowfs
