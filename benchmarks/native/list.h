// A list of files: paths, each ended by a zero byte.
#pragma once

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace prisma::bench {

inline std::vector<std::string> paths_in(const char* list) {
  std::ifstream file(list, std::ios::binary);
  if (!file) throw std::runtime_error(std::string("cannot open ") + list);
  std::vector<std::string> paths;
  for (std::string path; std::getline(file, path, '\0');) paths.push_back(path);
  return paths;
}

}  // namespace prisma::bench
