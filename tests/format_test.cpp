// SPDX-License-Identifier: MIT
#include <gpumem/estimate.hpp>
#include <gpumem/format.hpp>
#include <gpumem/models/transformer.hpp>

#include <string>

#include "catch.hpp"

using namespace gpumem;

namespace {

constexpr bytes mebi(std::uint64_t n) { return {n << 20}; }

breakdown small_breakdown() {
  breakdown b{.parameters = 1234567, .saved_per_layer = {77}};
  for (int i = 0; i < phases; ++i) {
    memory const m{.weights = mebi(100), .activations = mebi(static_cast<std::uint64_t>(50 * (i + 1)))};
    b.timeline[i] = {static_cast<phase>(i), m, m.total(), i == 4 ? "step" : ""};
  }
  b.peak = b.timeline[4];
  b.rule_of_thumb = {
      .bytes_per_parameter = 18, .weights = {6}, .gradients = {4}, .optimizer_states = {8}, .total = {18}};
  b.reserve = mebi(10);
  return b;
}

}  // namespace

TEST_CASE("sizes are rounded up where they are needed and down where they are there") {
  CHECK(detail::human({0}) == "0.00 MiB");
  CHECK(detail::human({1}) == "0.01 MiB");
  CHECK(detail::human({1}, false) == "0.00 MiB");
  CHECK(detail::human(mebi(1)) == "1.00 MiB");
  CHECK(detail::human({(1u << 20) + 1}) == "1.01 MiB");
  CHECK(detail::human(mebi(1023)) == "1023.00 MiB");
  CHECK(detail::human(mebi(1024)) == "1.00 GiB");
  CHECK(detail::human(mebi(1536)) == "1.50 GiB");
  CHECK(detail::human({UINT64_MAX}) == "17179869184.00 GiB");
  CHECK(detail::with_thousands(0) == "0");
  CHECK(detail::with_thousands(999) == "999");
  CHECK(detail::with_thousands(1000) == "1,000");
  CHECK(detail::with_thousands(671026419200) == "671,026,419,200");
}

TEST_CASE("a bare breakdown is a report") {
  std::string const text = to_text({.memory = small_breakdown()});
  CHECK(text.find("peak 350.00 MiB (0.37 GB) in optimizer step, at step\n") == 0);
  CHECK(text.find("  weights              100.00 MiB  ##########\n") != std::string::npos);
  CHECK(text.find("  optimizer step       350.00 MiB  ################################## <- peak\n") !=
        std::string::npos);
  CHECK(text.find("18 B x 1,234,567 parameters") != std::string::npos);
  CHECK(text.find("\xE2\x96\x88") == std::string::npos);
  std::string const unicode = to_text({.memory = small_breakdown()}, true);
  CHECK(unicode.find("\xE2\x96\x88") != std::string::npos);
  CHECK(unicode.find('#') == std::string::npos);
}

TEST_CASE("the verdict counts the reserve and rounds against the run") {
  report r{.memory = small_breakdown()};
  r.gpu = device_fact{"card", "Card", mebi(360)};
  CHECK(r.fits());
  CHECK(to_text(r).find("it fits, 0.00 MiB to spare") != std::string::npos);
  r.gpu->capacity = {mebi(360).value - 1};
  CHECK(!r.fits());
  CHECK(to_text(r).find("0.01 MiB missing") != std::string::npos);
}

TEST_CASE("JSON escapes what strings may hold") {
  report r{.memory = small_breakdown(), .notes = {"a \"quoted\" \\ line\n"}};
  std::string const json = to_json(r);
  CHECK(json.find(R"("notes": ["a \"quoted\" \\ line\u000a"])") != std::string::npos);
  CHECK(json.find(R"("device": null)") != std::string::npos);
  CHECK(json.find(R"("saved_per_layer": 77)") != std::string::npos);
}

TEST_CASE("Markdown has a row for each phase that happens") {
  report r{.memory = small_breakdown(), .title = "a model"};
  std::string const all = to_markdown(r);
  CHECK(all.find("## a model\n") == 0);
  CHECK(all.find("| optimizer step (peak) |") != std::string::npos);
  r.trains = false;
  r.memory.peak = r.memory.timeline[1];
  std::string const two = to_markdown(r);
  CHECK(two.find("| loss (peak) |") != std::string::npos);
  CHECK(two.find("| backward |") == std::string::npos);
}

TEST_CASE("lines wrap at 80 columns") {
  std::string const words = "word word word word word word word word word word word word word word word word word";
  CHECK(detail::wrapped(words, "", "  ") ==
        "word word word word word word word word word word word word word word word word\n  word\n");
  CHECK(detail::wrapped("") == "\n");
  CHECK(detail::wrapped(std::string(100, 'x')) == std::string(100, 'x') + "\n");
}
