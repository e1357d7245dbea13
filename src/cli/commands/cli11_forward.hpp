#pragma once

// CLI11 takes seconds to compile; who only passes its App on need not see it.
namespace CLI {  // NOLINT(readability-identifier-naming): its name
class App;
}
