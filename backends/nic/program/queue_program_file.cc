// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/queue_program_file.h"

#include <nlohmann/json.hpp>

#include "backends/nic/program/encode.h"

namespace prepost::nic {
namespace {

using Json = nlohmann::ordered_json;

std::string Hex(const std::vector<std::byte>& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (std::byte byte : bytes) {
    text.push_back(kDigits[std::to_integer<size_t>(byte >> 4)]);
    text.push_back(kDigits[std::to_integer<size_t>(byte & std::byte{15})]);
  }
  return text;
}

Json OpOrNull(OpId op) { return op == kNoOp ? Json() : Json(op.value); }

Json EntryJson(const SendEntry& entry) {
  Json json{{"wqe", Name(entry.opcode)}, {"signaled", entry.signaled}};
  if (entry.opcode == Opcode::kWait) {
    json["cq"] = entry.cq.value;
    json["cqe"] = entry.cqe_index;
  }
  if (entry.opcode == Opcode::kSendEnable) {
    json["qp"] = entry.qp.value;
    json["count"] = entry.count;
  }
  if (entry.opcode == Opcode::kSendImm) {
    json["block"] = entry.block;
    json["offset"] = entry.offset;
    json["bytes"] = entry.bytes;
  }
  json["op"] = OpOrNull(entry.op);
  return json;
}

Json EntryJson(const ReceiveEntry& entry) {
  Json json{{"block", entry.block == kNoBlock ? Json() : Json(entry.block)}};
  json["offset"] = entry.offset;
  json["bytes"] = entry.bytes;
  json["op"] = OpOrNull(entry.op);
  return json;
}

template <typename Entry>
Json QueueJson(const std::vector<Entry>& entries, const QueueImage& image) {
  Json list = Json::array();
  for (const Entry& entry : entries) list.push_back(EntryJson(entry));
  Json relocations = Json::array();
  for (const Relocation& it : image.relocations) {
    relocations.push_back(Json::array({it.offset, Name(it.kind), it.target}));
  }
  return {{"entries", list}, {"bytes", Hex(image.bytes)}, {"relocations", relocations}};
}

Json NodeJson(const NodeProgram& node) {
  Json cqs = Json::array();
  for (const CompletionQueue& cq : node.cqs) {
    Json json{{"role", Name(cq.role)}};
    json["qp"] = cq.role == CompletionQueue::Role::kIdle ? Json() : Json(cq.qp.value);
    json["completions"] = cq.completions;
    json["entries"] = cq.entries;
    cqs.push_back(json);
  }
  const std::vector<QueuePairImage> images = Encode(node);
  Json qps = Json::array();
  for (size_t i = 0; i < node.qps.size(); ++i) {
    const QueuePair& qp = node.qps[i];
    qps.push_back({{"peer", qp.peer.value},
                   {"lane", NumberOf(qp.lane)},
                   {"loopback", qp.loopback},
                   {"managed", qp.managed},
                   {"sq_wqebbs", qp.sq_wqebbs},
                   {"rq_wqes", qp.rq_wqes},
                   {"send_cq", qp.send_cq.value},
                   {"recv_cq", qp.recv_cq.value},
                   {"rq", QueueJson(qp.receives, images[i].rq)},
                   {"sq", QueueJson(qp.sends, images[i].sq)}});
  }
  return {{"node", node.node.value}, {"final_cq", node.final_cq.value}, {"cqs", cqs}, {"qps", qps}};
}

class BinaryWriter {
 public:
  void Word(size_t value) {
    for (int shift = 0; shift < 32; shift += 8)
      out_.push_back(static_cast<char>(value >> shift & 0xff));
  }
  void Text(const char* text) { out_ += text; }
  void Queue(const QueueImage& image) {
    Word(image.bytes.size());
    Word(image.relocations.size());
    out_.append(reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size());
    for (const Relocation& it : image.relocations) {
      Word(it.offset);
      Word(static_cast<size_t>(it.kind));
      Word(it.target);
    }
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace

std::string ToJson(const QueueProgram& program) {
  Json nodes = Json::array();
  for (const NodeProgram& node : program.nodes) nodes.push_back(NodeJson(node));
  const Json json{{"format", "prepost.queues"},
                  {"version", "1.0"},
                  {"mode", Name(program.mode)},
                  {"message",
                   {{"bytes", program.payload.bytes},
                    {"block_bytes", program.payload.block_bytes},
                    {"blocks", program.payload.blocks}}},
                  {"rnr_retry", program.rnr_retry},
                  {"nodes", nodes}};
  return json.dump(1) + "\n";
}

std::string ToBinary(const QueueProgram& program) {
  BinaryWriter out;
  out.Text("PPQ2");
  out.Word(program.nodes.size());
  for (const NodeProgram& node : program.nodes) {
    out.Word(node.node.value);
    out.Word(node.cqs.size());
    out.Word(node.qps.size());
    out.Word(node.final_cq.value);
    for (const CompletionQueue& cq : node.cqs) {
      out.Word(static_cast<size_t>(cq.role));
      out.Word(cq.qp.value);
      out.Word(cq.completions);
      out.Word(cq.entries);
    }
    const std::vector<QueuePairImage> images = Encode(node);
    for (size_t i = 0; i < node.qps.size(); ++i) {
      const QueuePair& qp = node.qps[i];
      for (size_t word : {size_t{qp.peer.value}, size_t{NumberOf(qp.lane)}, size_t{qp.loopback},
                          size_t{qp.managed}, size_t{qp.sq_wqebbs}, size_t{qp.rq_wqes},
                          qp.send_cq.index(), qp.recv_cq.index()}) {
        out.Word(word);
      }
      out.Queue(images[i].rq);
      out.Queue(images[i].sq);
    }
  }
  return out.Take();
}

}  // namespace prepost::nic
