#include "core/base/bytes.hpp"

#include <string>

#include <gtest/gtest.h>

#include "core/base/errors.hpp"

namespace coop {
namespace {

// An earlier implementation had these two the wrong way round.
TEST(Bytes, KbIsAThousandAndKibIs1024) {
  EXPECT_EQ(parse_bytes("1KB"), 1'000U);
  EXPECT_EQ(parse_bytes("1KiB"), 1'024U);
  EXPECT_EQ(parse_bytes("3MB"), 3'000'000U);
  EXPECT_EQ(parse_bytes("3MiB"), 3U * 1024 * 1024);
  EXPECT_EQ(parse_bytes("2GB"), 2'000'000'000U);
  EXPECT_EQ(parse_bytes("2GiB"), 2_GiB);
  EXPECT_EQ(parse_bytes("1TB"), 1'000'000'000'000U);
  EXPECT_EQ(parse_bytes("1TiB"), Bytes{1} << 40U);
}

TEST(Bytes, PlainNumbersFractionsAndOneSpace) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("4096B"), 4096U);
  EXPECT_EQ(parse_bytes("1.5 GiB"), 3_GiB / 2);
  EXPECT_EQ(parse_bytes("0.1KB"), 100U);
  EXPECT_EQ(parse_bytes("0.999999999TiB"), 1'099'511'626'676U);
  EXPECT_EQ(parse_bytes("18446744073709551615"), ~Bytes{0});
}

TEST(Bytes, RejectsWhatItDoesNotUnderstand) {
  for (const char* text : {"",
                           " ",
                           "GiB",
                           "-1",
                           "+1",
                           "8 GiBs",
                           "8gib",
                           "8 gb",
                           "8  GiB",
                           "8GiB ",
                           "4096 ",
                           " 8GiB",
                           "1.GiB",
                           ".5GiB",
                           "1e9",
                           "1,5GiB",
                           "0x10",
                           "8G",
                           "8K",
                           "1.5",
                           "1.5B",
                           "8GiB8",
                           "1.0000000001GiB",
                           "18446744073709551616",
                           "16777216TiB",
                           "99999999999999999999GiB",
                           "nan",
                           "inf"}) {
    EXPECT_THROW(parse_bytes(text), InvalidArgument) << "'" << text << "'";
  }
}

TEST(Bytes, TheErrorNamesTheTextAndSaysWhatIsRight) {
  try {
    parse_bytes("8 GiBs");
    FAIL();
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("'8 GiBs'"), std::string::npos) << text;
    EXPECT_NE(text.find("'GiBs'"), std::string::npos) << text;
    EXPECT_NE(text.find("8GiB"), std::string::npos) << text;
  }
}

TEST(Bytes, FormatsForPeople) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(640), "640 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1_KiB), "1 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(1_MiB - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(8_GiB), "8 GiB");
  EXPECT_EQ(format_bytes(19'000'000'000), "17.7 GiB");
}

TEST(Bytes, WhatIsFormattedWholeReadsBack) {
  for (const Bytes bytes : {1_B, 640_B, 1_KiB, 7_MiB, 8_GiB}) {
    EXPECT_EQ(parse_bytes(format_bytes(bytes)), bytes);
  }
}

}  // namespace
}  // namespace coop
