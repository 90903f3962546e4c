// SPDX-License-Identifier: MIT
// A small GPT, Llama and BERT as Hugging Face writes them, with LibTorch. A local lives here as long as it does there:
// statements are kept apart, because C++ holds every temporary until the end of its statement.
#pragma once
#include <torch/autograd.h>
#include <torch/optim.h>
#include <torch/types.h>

#include <cmath>
#include <cstdint>
#include <gpumem/models/encoder_classifier.hpp>
#include <gpumem/models/transformer.hpp>
#include <vector>

namespace witness {

using at::Tensor;

/// Parameters in the order in which they are first asked for: the first pass makes them, later ones find them again.
class parameter_list {
 public:
  Tensor next(std::vector<std::int64_t> const& shape) {
    if (at_ == all.size()) all.push_back(torch::randn(shape).mul_(0.02).set_requires_grad(true));
    return all[at_++];
  }
  void rewind() { at_ = 0; }

  std::vector<Tensor> all;

 private:
  std::size_t at_ = 0;
};

struct batch {
  Tensor ids, labels, mask, types;  // types: of an encoder's tokens

  [[nodiscard]] std::size_t bytes() const {
    return ids.nbytes() + labels.nbytes() + mask.nbytes() + (types.defined() ? types.nbytes() : 0);
  }
};

inline batch make_batch(std::int64_t b, std::int64_t s, std::int64_t vocabulary, std::int64_t labels) {
  const Tensor targets =
      labels == 0 ? torch::randint(vocabulary, {b, s}, torch::kInt64) : torch::randint(labels, {b}, torch::kInt64);
  batch made{torch::randint(vocabulary, {b, s}, torch::kInt64), targets, torch::ones({b, s}, torch::kInt64), {}};
  if (labels != 0) made.types = torch::zeros({b, s}, torch::kInt64);
  return made;
}

class program {
 public:
  explicit program(parameter_list& p) : p_(p) {}

  Tensor linear(Tensor const& x, std::int64_t in, std::int64_t out, bool bias) {
    const Tensor w = p_.next({out, in});
    return bias ? at::linear(x, w, p_.next({out})) : at::linear(x, w);
  }
  Tensor layer_norm(Tensor const& x, std::int64_t h) {
    const Tensor w = p_.next({h}), b = p_.next({h});
    return at::layer_norm(x, {h}, w, b);
  }
  Tensor rms_norm(Tensor const& x, std::int64_t h) {
    const Tensor w = p_.next({h});
    Tensor variance = x.pow(2);
    variance = variance.mean(-1, true);
    Tensor root = variance.add(1e-5);
    root = at::rsqrt(root);
    const Tensor normalized = x * root;
    return w * normalized;
  }
  static Tensor heads(Tensor const& x, std::int64_t n, std::int64_t d) {
    return x.view({x.size(0), x.size(1), n, d}).transpose(1, 2);
  }
  static Tensor merged(Tensor const& x) {
    Tensor y = x.transpose(1, 2);
    y = y.contiguous();
    return y.view({y.size(0), y.size(1), -1});
  }
  static Tensor repeat_heads(Tensor const& x, std::int64_t times) {
    if (times == 1) return x;
    const auto b = x.size(0), k = x.size(1), s = x.size(2), d = x.size(3);
    Tensor y = x.unsqueeze(2).expand({b, k, times, s, d});
    return y.reshape({b, k * times, s, d});
  }
  static Tensor rotated(Tensor const& x, Tensor const& cosine, Tensor const& sine) {
    const Tensor straight = x * cosine;
    const auto half = x.size(-1) / 2;
    Tensor crosswise;
    {
      const Tensor first = x.slice(-1, 0, half), second = x.slice(-1, half);
      Tensor negated = at::neg(second);
      crosswise = at::cat({negated, first}, -1);
    }
    crosswise = crosswise * sine;
    return straight + crosswise;
  }

 protected:
  parameter_list& p_;
};

/// GPT-2 without dropout: one projection for q, k and v, GELU in one kernel, a tied head.
class gpt : public program {
 public:
  gpt(gpumem::transformer const& m, parameter_list& p) : program(p), m_(m) {
    causal_ = torch::ones({1, 1, m.positions, m.positions}, torch::kBool).tril();
    lowest_ = torch::full({}, -1e9f);
  }
  Tensor loss(batch const& in) {
    p_.rewind();
    const Tensor table = p_.next({m_.vocabulary, m_.hidden});
    Tensor x = body(in, table);
    const Tensor logits = at::linear(x, table);
    return causal_loss(logits, in.labels, m_.vocabulary);
  }
  static Tensor causal_loss(Tensor const& logits, Tensor const& labels, std::int64_t vocabulary) {
    Tensor padded = at::constant_pad_nd(labels, {0, 1}, -100);
    Tensor shifted = padded.slice(-1, 1).contiguous();
    padded.reset();
    return at::cross_entropy_loss(logits.view({-1, vocabulary}), shifted.view({-1}));
  }

 private:
  Tensor body(batch const& in, Tensor const& table) {
    const Tensor position_table = p_.next({m_.positions, m_.hidden});
    Tensor position_ids = at::arange(in.ids.size(1), torch::kInt64).unsqueeze(0);
    const Tensor embedded = at::embedding(table, in.ids), positions = at::embedding(position_table, position_ids);
    position_ids.reset();
    Tensor x = embedded + positions;
    for (std::int64_t i = 0; i < m_.layers; ++i) x = block(x);
    return layer_norm(x, m_.hidden);
  }
  Tensor block(Tensor const& x) {
    Tensor normed = layer_norm(x, m_.hidden);
    Tensor attended = attention(normed);
    normed.reset();
    const Tensor middle = x + attended;
    attended.reset();
    normed = layer_norm(middle, m_.hidden);
    Tensor mlp = linear(normed, m_.hidden, m_.mlp_width(), true);
    mlp = at::gelu(mlp);
    mlp = linear(mlp, m_.mlp_width(), m_.hidden, true);
    return middle + mlp;
  }
  Tensor attention(Tensor const& x) {
    const std::int64_t d = m_.head_width(), s = x.size(1);
    Tensor q, k, v;
    {
      const Tensor all = linear(x, m_.hidden, 3 * m_.hidden, true);
      const auto parts = all.split(m_.hidden, 2);
      q = heads(parts[0], m_.heads, d), k = heads(parts[1], m_.heads, d), v = heads(parts[2], m_.heads, d);
    }
    Tensor p = at::matmul(q, k.transpose(-1, -2));
    p = p / std::sqrt(static_cast<double>(d));
    p = at::where(causal_.slice(2, 0, s).slice(3, 0, s), p, lowest_);
    p = at::softmax(p, -1);
    p = at::matmul(p, v);
    p = merged(p);
    return linear(p, m_.hidden, m_.hidden, true);
  }
  gpumem::transformer m_;
  Tensor causal_, lowest_;
};

/// Llama with shared key-value heads.
class llama_model : public program {
 public:
  llama_model(gpumem::transformer const& m, parameter_list& p) : program(p), m_(m) {}

  Tensor loss(batch const& in) {
    p_.rewind();
    const std::int64_t b = in.ids.size(0), s = in.ids.size(1);
    const Tensor table = p_.next({m_.vocabulary, m_.hidden});
    Tensor x = at::embedding(table, in.ids);
    Tensor cosine = torch::ones({1, 1, s, m_.head_width()}), sine = torch::ones({1, 1, s, m_.head_width()});
    Tensor mask = torch::zeros({b, 1, s, s});
    for (std::int64_t i = 0; i < m_.layers; ++i) x = block(x, cosine, sine, mask);
    x = rms_norm(x, m_.hidden);
    cosine.reset(), sine.reset(), mask.reset();
    const Tensor logits = linear(x, m_.hidden, m_.vocabulary, false);
    return gpt::causal_loss(logits, in.labels, m_.vocabulary);
  }

 private:
  Tensor block(Tensor const& x, Tensor const& cosine, Tensor const& sine, Tensor const& mask) {
    Tensor normed = rms_norm(x, m_.hidden);
    Tensor attended = attention(normed, cosine, sine, mask);
    normed.reset();
    const Tensor middle = x + attended;
    attended.reset();
    normed = rms_norm(middle, m_.hidden);
    Tensor inner = linear(normed, m_.hidden, m_.mlp_width(), false);
    inner = at::silu(inner);
    {
      const Tensor up = linear(normed, m_.hidden, m_.mlp_width(), false);
      inner = inner * up;
    }
    inner = linear(inner, m_.mlp_width(), m_.hidden, false);
    normed.reset();
    return middle + inner;
  }
  Tensor attention(Tensor const& x, Tensor const& cosine, Tensor const& sine, Tensor const& mask) {
    const std::int64_t d = m_.head_width(), kv = m_.key_value_heads();
    Tensor q = heads(linear(x, m_.hidden, m_.heads * d, false), m_.heads, d);
    Tensor k = heads(linear(x, m_.hidden, kv * d, false), kv, d);
    const Tensor v = heads(linear(x, m_.hidden, kv * d, false), kv, d);
    {
      const Tensor turned_q = rotated(q, cosine, sine), turned_k = rotated(k, cosine, sine);
      q = turned_q, k = turned_k;
    }
    const Tensor all_k = repeat_heads(k, m_.heads / kv), all_v = repeat_heads(v, m_.heads / kv);
    Tensor p = at::matmul(q, all_k.transpose(2, 3));
    p = p / std::sqrt(static_cast<double>(d));
    p = p + mask;
    p = at::softmax(p, -1);
    p = at::matmul(p, all_v);
    p = merged(p);
    return linear(p, m_.heads * d, m_.hidden, false);
  }
  gpumem::transformer m_;
};

/// BERT without dropout and with a classifier.
class bert : public program {
 public:
  bert(gpumem::encoder_classifier const& m, parameter_list& p) : program(p), m_(m) {}

  Tensor loss(batch const& in) {
    p_.rewind();
    const std::int64_t s = in.ids.size(1), h = m_.hidden;
    Tensor mask = torch::zeros({in.ids.size(0), 1, 1, s});
    Tensor x;
    {
      const Tensor words = at::embedding(p_.next({m_.vocabulary, h}), in.ids);
      const Tensor types = at::embedding(p_.next({m_.token_types, h}), in.types);
      Tensor sum = words + types;
      const Tensor position_ids = at::arange(s, torch::kInt64).unsqueeze(0);
      const Tensor positions = at::embedding(p_.next({m_.positions, h}), position_ids);
      sum += positions;
      x = layer_norm(sum, h);
    }
    for (std::int64_t i = 0; i < m_.layers; ++i) x = block(x, mask);
    Tensor first = x.select(1, 0);
    first = linear(first, h, h, true);
    first = at::tanh(first);
    const Tensor logits = linear(first, h, m_.labels, true);
    return at::cross_entropy_loss(logits, in.labels);
  }

 private:
  Tensor block(Tensor const& x, Tensor const& mask) {
    const std::int64_t h = m_.hidden;
    Tensor mixed = attention(x, mask);
    Tensor projected = linear(mixed, h, h, true);
    const Tensor middle = layer_norm(projected + x, h);
    projected.reset(), mixed.reset();
    Tensor inner = linear(middle, h, m_.mlp_width(), true);
    inner = at::gelu(inner);
    const Tensor down = linear(inner, m_.mlp_width(), h, true);
    return layer_norm(down + middle, h);
  }
  Tensor attention(Tensor const& x, Tensor const& mask) {
    const std::int64_t h = m_.hidden, d = h / m_.heads;
    const Tensor q = heads(linear(x, h, h, true), m_.heads, d), k = heads(linear(x, h, h, true), m_.heads, d),
                 v = heads(linear(x, h, h, true), m_.heads, d);
    Tensor p = at::matmul(q, k.transpose(-1, -2));
    p = p / std::sqrt(static_cast<double>(d));
    p = p + mask;
    p = at::softmax(p, -1);
    p = at::matmul(p, v);
    return merged(p);
  }
  gpumem::encoder_classifier m_;
};

}  // namespace witness
