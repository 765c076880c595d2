"""Adversarial bandits: which of K arms to draw, from the rewards of those drawn before.

They know nothing of pages. Rewards are in [0, 1]. All work in logarithms, so that no number of
rewards overflows. The draw itself is the caller's.
"""

from __future__ import annotations

import math

import numpy as np

from salticus.types import Floats
from salticus.types.state import State


class Learner:
    """The contract: the probability of each arm, changed by the reward of the arm drawn.

    Laws: probabilities are positive and sum to 1, all equal at first; a learner restored from its
    state goes on alike.
    """

    kept: tuple[str, ...] = ()

    def __init__(self, arms: int) -> None:
        self.arms = arms

    def probabilities(self) -> Floats:
        """The probability q of each arm in the coming step."""
        raise NotImplementedError

    def update(self, arm: int, reward: float) -> None:
        """Learn what the arm earned that was drawn with these probabilities."""
        raise NotImplementedError

    def state(self) -> State:
        return {name: np.array(getattr(self, name)) for name in self.kept}

    def restore(self, state: State) -> None:
        for name in self.kept:
            setattr(self, name, state[name].copy())


class Exp3(Learner):
    """EXP3 as Han et al. (2020), Algorithm 1, run it: a share `gamma` of the draws explores.

    q_k = (1 − γ) w_k / Σw + γ/K, then w_A ← w_A exp(γ/K · x/q_A) for the arm A drawn. As printed,
    line 11 divides by q of an index that is not bound, and line 3 reads weights that line 1 has not
    set; both are corrected. Kept are logarithms of weights, the highest 0.

    Regret against the best arm: at most (e − 1) γ G + K ln K / γ, with G its reward (Auer et al.
    2002, theorem 3.1).

    >>> learner = Exp3(2, gamma=0.2)
    >>> learner.update(0, 1.0)  # w: exp(0.2 / 2 · 1 / 0.5), 1
    >>> learner.probabilities().round(4)
    array([0.5399, 0.4601])
    """

    kept: tuple[str, ...] = ("log_weights_",)

    def __init__(self, arms: int, *, gamma: float = 0.1) -> None:
        super().__init__(arms)
        self.gamma = gamma
        self.log_weights_ = np.zeros(arms)

    def probabilities(self) -> Floats:
        gamma = self.explored()
        return (1.0 - gamma) * _softmax(self.log_weights_) + gamma / self.arms

    def explored(self) -> float:
        """γ of the coming step: the share of draws that explore, and the rate of learning."""
        return self.gamma

    def update(self, arm: int, reward: float) -> None:
        gains = np.zeros(self.arms)
        gains[arm] = reward / self.probabilities()[arm]
        self._raise(self.explored() / self.arms * gains)

    def update_all(self, rewards: Floats) -> None:
        """Learn estimates of what every arm would have earned, from one step: w_k ← w_k exp(γ x_k).

        K times the rate of an arm that is drawn now and then; x is cut at 1/γ.
        """
        self._raise(self.gamma * np.minimum(rewards, 1.0 / self.gamma))

    def _raise(self, logs: Floats) -> None:
        self.log_weights_ = self.log_weights_ + logs
        self.log_weights_ -= self.log_weights_.max()


class Exp3Anytime(Exp3):
    """EXP3 whose γ begins at 1 and falls to `gamma`, for steps too few to learn at the latter.

    γ_t = √(K ln K / ((e − 1) t)), which is the best for t steps (Auer et al. 2002, corollary 3.2),
    until it has come down to `gamma`: for five arms and 0.1 that takes 469 steps. From then on it
    is EXP3 as published.

    >>> learner = Exp3Anytime(5)
    >>> for _ in range(99):
    ...     learner.update(0, 0.0)
    >>> round(learner.explored(), 3)
    0.216
    """

    kept = ("log_weights_", "steps_")

    def __init__(self, arms: int, *, gamma: float = 0.1) -> None:
        super().__init__(arms, gamma=gamma)
        self.steps_ = np.zeros(1)

    def explored(self) -> float:
        steps = float(self.steps_[0]) + 1.0
        best = math.sqrt(self.arms * math.log(self.arms) / ((math.e - 1.0) * steps))
        return max(self.gamma, min(1.0, best))

    def update(self, arm: int, reward: float) -> None:
        super().update(arm, reward)
        self.steps_ += 1.0


class Exp3Ix(Learner):
    """EXP3-IX (Neu 2015): estimates that are kept low instead of draws that explore.

    q ∝ exp(−η_t L), then L_A += (1 − x) / (q_A + η_t/2), with η_t = √(ln K / (K t)). Regret: with
    probability 1 − δ at most 4 √(K T ln K) + (2 √(K T / ln K) + 1) ln(2/δ).
    """

    kept: tuple[str, ...] = ("losses_", "steps_")
    pace = 1.0

    def __init__(self, arms: int) -> None:
        super().__init__(arms)
        self.losses_ = np.zeros(arms)
        self.steps_ = np.zeros(1)

    def probabilities(self) -> Floats:
        return _softmax(-self._rate() * self.losses_)

    def update(self, arm: int, reward: float) -> None:
        chance = float(self.probabilities()[arm])
        self.losses_[arm] += (1.0 - reward) / (chance + self._rate() / 2.0)
        self.steps_ += 1.0

    def _rate(self) -> float:
        """η of the coming step."""
        steps = float(self.steps_[0]) + 1.0
        return self.pace * math.sqrt(math.log(self.arms) / (self.arms * steps))


class Exp3Plus(Exp3Ix):
    """EXP3++ (Seldin and Lugosi 2017): explores less what is surely worse.

    q = (1 − Σε) ρ + ε with ρ ∝ exp(−η_t L) and ε_t(a) = min{1/2K, η_t, β ln t / (t Δ_a²)}, where
    η_t = ½ √(ln K / (K t)). Δ_a is by how much arm a's mean loss is above the best one's at least:
    its lower bound less the least upper bound, both √(α ln(t K^(1/α)) / 2N) from the mean of N.
    Then L_A += (1 − x) / q_A. Regret: at most 4 √(K T ln K), far less where one arm stays best.
    """

    kept = ("losses_", "steps_", "drawn_", "suffered_")
    pace = 0.5

    def __init__(self, arms: int, *, alpha: float = 3.0, beta: float = 256.0) -> None:
        super().__init__(arms)
        self.alpha = alpha
        self.beta = beta
        self.drawn_, self.suffered_ = np.zeros(arms), np.zeros(arms)

    def probabilities(self) -> Floats:
        explored = self._explored()
        return np.asarray((1.0 - explored.sum()) * super().probabilities() + explored)

    def update(self, arm: int, reward: float) -> None:
        self.losses_[arm] += (1.0 - reward) / float(self.probabilities()[arm])
        self.drawn_[arm] += 1.0
        self.suffered_[arm] += 1.0 - reward
        self.steps_ += 1.0

    def _explored(self) -> Floats:
        """ε: the probability with which each arm is drawn whatever its losses are."""
        t = float(self.steps_[0]) + 1.0
        gap = np.maximum(self._gaps(t), 1e-150)
        surely_worse = self.beta * math.log(t) / (t * gap**2)
        most = min(1.0 / (2.0 * self.arms), self._rate())
        return np.where(gap > 1e-150, np.minimum(most, surely_worse), most)

    def _gaps(self, t: float) -> Floats:
        """By how much each arm is worse than the best, with confidence."""
        often = np.maximum(self.drawn_, 1.0)
        wide = np.sqrt((self.alpha * math.log(t) + math.log(self.arms)) / (2.0 * often))
        wide = np.where(self.drawn_ > 0, wide, np.inf)
        mean = self.suffered_ / often
        lower, upper = np.maximum(0.0, mean - wide), np.minimum(1.0, mean + wide)
        return np.asarray(np.maximum(0.0, lower - upper.min()))


class Hedge(Learner):
    """Weights of arms in each of several classes, from the gains of all arms at every step.

    q_kc = (1 − γ) softmax_k(η A_k + η_c A_kc) + γ/K with A_kc what arm k has gained in class c so
    far, of any scale and sign, and A_k in all classes: so that each class begins with what all have
    taught. η = √(ln K / Σ max_k a²), of its own for each: Hedge in its scale-free form (Orabona and
    Pál 2015). `probabilities` are those of all classes together: what is due to each arm.
    """

    kept: tuple[str, ...] = ("gains_", "squares_", "shares_")

    def __init__(self, arms: int, classes: int, *, gamma: float = 0.1) -> None:
        super().__init__(arms)
        self.classes = classes
        self.gamma = gamma
        self.gains_ = np.zeros((arms, classes))
        self.squares_ = np.zeros(classes + 1)  # of each class, and of all together
        self.shares_ = np.full(arms, 1.0 / arms)

    def of_classes(self) -> Floats:
        """The weight of each arm (row) in each class."""
        scale = np.sqrt(np.where(self.squares_ > 0, self.squares_, 1.0))
        own = _with_all(self.gains_) / scale * math.sqrt(math.log(self.arms))
        logs = own[:, :-1] + own[:, -1:]
        weights = np.exp(logs - logs.max(axis=0))
        explored = self.gamma / self.arms
        return np.asarray((1.0 - self.gamma) * weights / weights.sum(axis=0) + explored)

    def probabilities(self) -> Floats:
        return self.shares_.copy()

    def learn(self, gains: Floats) -> None:
        """What every arm (row) gained in each class."""
        self.gains_ = self.gains_ + gains
        self.squares_ = self.squares_ + (_with_all(gains) ** 2).max(axis=0)


def _with_all(gains: Floats) -> Floats:
    """The columns of the classes, and their sum as the last one."""
    return np.concatenate([gains, gains.sum(axis=1, keepdims=True)], axis=1)


def _softmax(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
