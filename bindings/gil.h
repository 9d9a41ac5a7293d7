// Letting go of the interpreter and taking it back.
//
// Before Python 3.14, a thread that wants the interpreter while it shuts down is ended by an unwind
// of its stack, which C++ lets through no destructor: the whole program would abort. Such a thread,
// a daemon's, waits for the end of the process instead, as it does from 3.14 on.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace prisma {

template <typename Take>
void take_interpreter(Take take) {
  try {
    take();
  } catch (abi::__forced_unwind&) {
    while (true) ::pause();
  }
}

/// Without the interpreter, while it lives.
class NoGil {
 public:
  NoGil() : state_(PyEval_SaveThread()) {}
  NoGil(const NoGil&) = delete;
  ~NoGil() {
    take_interpreter([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* state_;
};

/// With the interpreter, within a NoGil.
class WithGil {
 public:
  WithGil() {
    take_interpreter([this] { state_ = PyGILState_Ensure(); });
  }
  WithGil(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace prisma
