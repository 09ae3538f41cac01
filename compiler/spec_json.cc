// SPDX-License-Identifier: Apache-2.0
#include "compiler/spec_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "compiler/topology/topology_json.h"
#include "ir/base/utf8.h"
#include "ir/json/json_reader.h"
#include "ir/json/json_text.h"
#include "ir/json/json_word.h"

namespace prepost {
namespace {

constexpr const char* kSpecFormat = "prepost.spec";
constexpr uint32_t kSpecMajor = 1;
constexpr uint32_t kSpecMinor = 0;
constexpr size_t kPathBytesMax = 4096;

JsonForm::ReadScalar ReadReady(SpecReady* out) {
  return [out](const JsonScalar& scalar) -> Status {
    std::string text;
    PREPOST_RETURN_IF_ERROR(ReadString(&text)(scalar));
    Result<SpecReady> ready = ParseReady(text);
    if (!ready.ok()) return ready.status();
    *out = *ready;
    return {};
  };
}

/// "auto", a number, or null for none.
JsonForm::ReadScalar ReadSendWindow(SpecSendWindow* out) {
  return [out](const JsonScalar& scalar) -> Status {
    if (scalar.kind == JsonScalar::Kind::kString && scalar.text == "auto") {
      *out = {};
      return {};
    }
    if (scalar.kind == JsonScalar::Kind::kString) {
      return Rejected(
          fmt::format("expected a number of sends, null for none, or \"auto\", found \"{}\"",
                      Printable(scalar.text)));
    }
    out->automatic = false;
    PREPOST_RETURN_IF_ERROR(ReadOptionalUint32(&out->window)(scalar));
    if (out->window == 0u) return Rejected("a send window is at least 1, found 0");
    return {};
  };
}

/// "auto" or a number.
JsonForm::ReadScalar ReadBlockBytes(Spec* out) {
  return [out](const JsonScalar& scalar) -> Status {
    out->choose_block_bytes = scalar.kind == JsonScalar::Kind::kString && scalar.text == "auto";
    if (out->choose_block_bytes) return {};
    if (scalar.kind == JsonScalar::Kind::kString)
      return Rejected("expected a number or \"auto\", found " + scalar.Describe());
    return ReadUint64(&out->block_bytes, kMessageBytesMax, 1)(scalar);
  };
}

/// A name, which CheckSpec() looks up.
JsonForm::ReadScalar ReadAlgorithm(std::string* out) {
  return [out](const JsonScalar& scalar) -> Status {
    PREPOST_RETURN_IF_ERROR(ReadString(out)(scalar));
    return out->empty() ? Rejected("expected the name of a schedule, found \"\"") : Status();
  };
}

/// "sum:float32".
JsonForm::ReadScalar ReadCombine(Combine* out) {
  return [out](const JsonScalar& scalar) -> Status {
    constexpr const char* kForm = R"("sum:float32" or { "op": "sum", "type": "float32" })";
    if (scalar.kind != JsonScalar::Kind::kString)
      return Rejected(fmt::format("expected {}, found {}", kForm, scalar.Describe()));
    const Result<Combine> combine = ParseCombine(scalar.text);
    if (!combine.ok()) {
      return Rejected(fmt::format("{}; expected {}", Printable(combine.status().message()), kForm));
    }
    *out = *combine;
    return {};
  };
}

/// The node at the next vertex.
JsonForm::ReadScalar ReadOrder(std::vector<NodeId>* out) {
  return [out](const JsonScalar& scalar) -> Status {
    if (out->size() == kNodesMax)
      return Rejected(fmt::format("an order has at most {} nodes", kNodesMax));
    return ReadUint32(&out->emplace_back().value)(scalar);
  };
}

}  // namespace

void SpecKeys::AddTo(Spec* spec, JsonForm* form, JsonForm::Need need) {
  using Need = JsonForm::Need;
  combine_.Scalar("op", ReadWord(&spec->combine.op)).Scalar("type", ReadWord(&spec->combine.type));
  form->Scalar("collective", ReadWord(&spec->collective), need)
      .ScalarOrObject("combine", ReadCombine(&spec->combine), &combine_, Need::kOptional)
      .Scalar("deterministic", ReadBool(&spec->is_deterministic), Need::kOptional)
      .Scalar("nodes", ReadUint32(&spec->nodes, 0xffffffff, 1), Need::kOptional)
      .Scalar("root", ReadUint32(&spec->root.value), Need::kOptional)
      .Scalar(
          "message_bytes",
          [spec](const JsonScalar& scalar) {
            return ReadUint64(&spec->message_bytes.emplace(), kMessageBytesMax)(scalar);
          },
          Need::kOptional)
      .ScalarsOrLists(
          "part_bytes", [this] { part_rows_.EndRow(); },
          [this](const JsonScalar& scalar) -> Status {
            uint64_t bytes = 0;
            PREPOST_RETURN_IF_ERROR(ReadUint64(&bytes, kMessageBytesMax)(scalar));
            return part_rows_.Add(bytes);
          },
          Need::kOptional, /*least=*/1)
      .Scalar("block_bytes", ReadBlockBytes(spec), Need::kOptional)
      .Scalar("algorithm", ReadAlgorithm(&spec->algorithm), Need::kOptional)
      .Scalar("ready", ReadReady(&spec->ready), Need::kOptional)
      .Scalar("send_window", ReadSendWindow(&spec->send_window), Need::kOptional);
  spec_ = spec;
}

Status SpecKeys::End() {
  Result<std::vector<uint64_t>> sizes = part_rows_.Take();
  if (!sizes.ok()) return Rejected("part_bytes: " + sizes.status().message());
  if (!sizes->empty()) spec_->part_bytes = *std::move(sizes);
  return {};
}

Result<Spec> ReadSpec(std::istream& in, const std::string& name, const Spec& defaults,
                      std::vector<std::string>* warnings) {
  using Need = JsonForm::Need;
  Spec spec = defaults;
  std::vector<NodeId> order;
  TopologyForm topology(TopologyForm::Kind::kSection, warnings);
  JsonForm form;
  SpecKeys keys;
  form.Scalar("format", ExpectString(kSpecFormat))
      .Scalar("version", ExpectVersion(kSpecMajor, kSpecMinor, warnings));
  keys.AddTo(&spec, &form, Need::kRequired);
  form.OnEnd([&keys] { return keys.End(); });
  form.ScalarOrObject("topology", ReadString(&spec.topology_path, kPathBytesMax), topology.form(),
                      Need::kOptional)
      .Scalars("order", ReadOrder(&order), Need::kOptional);
  PREPOST_RETURN_IF_ERROR(ReadJson(in, name, &form));
  if (!order.empty()) spec.order = std::move(order);
  if (topology.is_there()) {
    Result<Network> read = topology.Finish();
    if (!read.ok())
      return Rejected(read.status().message(), name + ": /topology" + read.status().where());
    spec.topology = *std::move(read);
  }
  return spec;
}

void WriteSpec(const Spec& spec, std::ostream& out) {
  nlohmann::ordered_json json = {{"format", kSpecFormat},
                                 {"version", fmt::format("{}.{}", kSpecMajor, kSpecMinor)},
                                 {"collective", Name(spec.collective)},
                                 {"root", spec.root.value},
                                 {"block_bytes", spec.block_bytes},
                                 {"algorithm", spec.algorithm},
                                 {"ready", ToString(spec.ready)},
                                 {"send_window", "auto"}};
  if (!spec.combine.is_none())
    json["combine"] = {{"op", Name(spec.combine.op)}, {"type", Name(spec.combine.type)}};
  if (spec.is_deterministic) json["deterministic"] = true;
  if (spec.nodes != 0) json["nodes"] = spec.nodes;
  if (spec.choose_block_bytes) json["block_bytes"] = "auto";
  if (spec.message_bytes) json["message_bytes"] = *spec.message_bytes;
  if (!spec.part_bytes.empty()) json["part_bytes"] = spec.part_bytes;
  if (!spec.send_window.automatic) {
    json["send_window"] = nullptr;
    if (spec.send_window.window) json["send_window"] = *spec.send_window.window;
  }
  if (!spec.topology_path.empty()) {
    json["topology"] = spec.topology_path;
  } else if (spec.topology) {
    json["topology"] = nlohmann::ordered_json::parse(TopologySection(*spec.topology));
  }
  for (const NodeId node : spec.order) json["order"].push_back(node.value);
  out << JsonText(json) << "\n";
}

}  // namespace prepost
