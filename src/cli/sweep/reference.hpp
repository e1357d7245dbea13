#pragma once

// Figures of others to stand beside ours: a peer's, a lower bound.
//
//     # where they come from
//     reference,trace,ratio,time
//     lower bound,resnet50,.5,1.069
//     lower bound,gpt_2_7b,.5,none
//
// `time` is total time over the time without a budget; `none` where it does not fit. `trace` is the name
// of a trace, or its beginning up to a '-': names of DTR logs go on with the date of the recording.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coop::cli {

struct ReferenceFigure {
  double ratio = 0;
  std::optional<double> overhead;  // nothing: does not fit
};

struct Reference {
  std::string name;
  std::string trace;
  std::vector<ReferenceFigure> figures;

  [[nodiscard]] const ReferenceFigure* at(double ratio) const;
};

// Throws sim::TraceError, with file and line.
std::vector<Reference> read_references(const std::string& path);
std::vector<Reference> parse_references(std::string_view text, const std::string& file);

// Those of this trace.
std::vector<Reference> references_for(const std::vector<Reference>& all, std::string_view trace);

}  // namespace coop::cli
